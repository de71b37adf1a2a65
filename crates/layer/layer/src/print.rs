//! The printer: every call, with the names of the C API, into a file.
//!
//! Under a lock, on the application's thread: slow, but the call that crashed the driver is in the file.
//! Where calls are recorded too, a line above a call names what must come before it on another thread.

use std::fs::File;
use std::io::Write;

use lavascope_record::{ObjectNames, OrderEdge, check, print::print_with};
use lavascope_settings::Output;

pub(crate) struct Printer {
    output: Output,
    to: Box<dyn Write + Send>,
    /// The thread whose call was printed last.
    thread: u32,
    titles: ObjectNames,
}

impl Printer {
    pub(crate) fn open(output: &Output) -> Result<Printer, String> {
        let to: Box<dyn Write + Send> = match output {
            Output::Stderr => Box::new(std::io::stderr()),
            Output::Stdout => Box::new(std::io::stdout()),
            Output::File(path) => {
                let file = File::options().create(true).append(true).open(path);
                Box::new(file.map_err(|it| format!("{} cannot be written: {it}", path.display()))?)
            }
        };
        Ok(Printer { output: output.clone(), to, thread: 1, titles: ObjectNames::default() })
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn record(&mut self, thread: u32, record: &[u64]) {
        let mut text = match check(record) {
            Ok(record) => {
                self.titles.apply(record);
                let after = |it: OrderEdge| format!("// after call {} of thread {}\n", it.call, it.thread);
                record.order_edges().map(after).collect::<String>() + &print_with(record, &self.titles)
            }
            Err(error) => format!("a bug of ours, please report it: {error}\n"),
        };
        if thread != self.thread {
            self.thread = thread;
            text.insert_str(0, &format!("// thread {thread}\n"));
        }
        // The application goes on whatever becomes of our file.
        let _ = self.to.write_all(text.as_bytes());
    }
}
