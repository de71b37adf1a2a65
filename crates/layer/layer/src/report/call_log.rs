//! The printer: every call, with the names of the C API, into a file.
//!
//! Under a lock, on the application's thread: slow, but the call that crashed the driver is in the file.
//! Where calls are recorded too, a line above a call names what must come before it on another thread.

use std::fs::File;
use std::io::Write;

use lavascope_record::{ObjectNames, OrderEdge, check, print::print_with};
use lavascope_settings::OutputTarget;

use crate::process::process_state::PROCESS_STATE;

pub(crate) struct CallLogWriter {
    output: OutputTarget,
    writer: Box<dyn Write + Send>,
    /// The thread whose call was printed last.
    thread: u32,
    object_names: ObjectNames,
}

impl CallLogWriter {
    pub(crate) fn open(output: &OutputTarget) -> Result<CallLogWriter, String> {
        let to: Box<dyn Write + Send> = match output {
            OutputTarget::Stderr => Box::new(std::io::stderr()),
            OutputTarget::Stdout => Box::new(std::io::stdout()),
            OutputTarget::File(path) => {
                let file = File::options().create(true).append(true).open(path);
                Box::new(file.map_err(|it| format!("{} cannot be written: {it}", path.display()))?)
            }
        };
        Ok(CallLogWriter { output: output.clone(), writer: to, thread: 1, object_names: ObjectNames::default() })
    }

    pub(crate) fn output(&self) -> &OutputTarget {
        &self.output
    }

    pub(crate) fn record(&mut self, thread: u32, record: &[u64]) {
        let mut text = match check(record) {
            Ok(record) => {
                self.object_names.apply(record);
                let number = |it| PROCESS_STATE.threads.call_number(it);
                let after = |it: OrderEdge| format!("// after call {} of thread {}\n", number(it), it.thread);
                record.order_edges().map(after).collect::<String>() + &print_with(record, &self.object_names)
            }
            Err(error) => format!("a bug of ours, please report it: {error}\n"),
        };
        if thread != self.thread {
            self.thread = thread;
            text.insert_str(0, &format!("// thread {thread}\n"));
        }
        // The application goes on whatever becomes of our file.
        let _ = self.writer.write_all(text.as_bytes());
    }
}
