//! The thread that compresses blocks and writes them: slow things that nobody else waits for.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_trace::{BlockKind, BlockWriter, Codec, RawBlock, SeekPoint, WrittenBlock};

/// Blocks that may wait to be written. When there are more, the reader waits, and then the streams fill.
const QUEUED_BLOCKS_MAX: usize = 32;

/// What the thread gets to do.
enum WriteJob {
    Block(RawBlock),
    /// All that came before must be on the disk.
    Sync,
    End(Vec<SeekPoint>),
}

/// The writing thread, as the others see it.
pub(crate) struct FileWriter {
    jobs: SyncSender<WriteJob>,
    written: Receiver<WrittenBlock>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl FileWriter {
    /// `every`: how often what was written is made safe from a loss of power.
    pub(crate) fn start(writer: BlockWriter<File>, codec: Codec, every: Duration) -> io::Result<FileWriter> {
        let (jobs, todo) = sync_channel(QUEUED_BLOCKS_MAX);
        let (written_sender, written) = channel();
        let work = move || {
            FileWriterThread { writer, codec, sync_interval: every, last_sync: Instant::now() }
                .run(&todo, &written_sender)
        };
        let thread = std::thread::Builder::new().name("lavascope-writer".into()).spawn(work)?;
        Ok(FileWriter { jobs, written, thread: Some(thread) })
    }

    /// Hands a block over. False if the thread has stopped, over an error.
    pub(crate) fn queue_block(&self, block: RawBlock) -> bool {
        self.jobs.send(WriteJob::Block(block)).is_ok()
    }

    pub(crate) fn sync(&self) -> bool {
        self.jobs.send(WriteJob::Sync).is_ok()
    }

    /// What has got into the file since the last time.
    pub(crate) fn written(&self) -> impl Iterator<Item = WrittenBlock> + '_ {
        self.written.try_iter().filter(|it| it.kind == BlockKind::Calls)
    }

    /// Ends the file; gives how many bytes it has, or why that went wrong.
    pub(crate) fn end(&mut self, moments: &[SeekPoint]) -> io::Result<u64> {
        let _ = self.jobs.send(WriteJob::End(moments.to_vec()));
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the writing thread is gone")),
        }
    }
}

struct FileWriterThread {
    writer: BlockWriter<File>,
    codec: Codec,
    sync_interval: Duration,
    last_sync: Instant,
}

impl FileWriterThread {
    fn run(mut self, todo: &Receiver<WriteJob>, written_sender: &Sender<WrittenBlock>) -> io::Result<u64> {
        while let Ok(job) = todo.recv() {
            let result = match job {
                WriteJob::Block(block) => self.writer.write(block.compress(self.codec)).map(|written_block| {
                    // Nobody listens any more at the very end.
                    let _ = written_sender.send(written_block);
                }),
                WriteJob::Sync => self.sync(),
                WriteJob::End(moments) => return self.finish(&moments),
            };
            if let Err(error) = result {
                self.close();
                return Err(error);
            }
        }
        self.finish(&[])
    }

    /// Ends a file that cannot be written any more. It is whole up to here; perhaps there is room for an index instead
    /// of half a block, and a file without one is read as well.
    fn close(mut self) {
        let size = self.writer.size();
        let file = self.writer.get_mut();
        let again = file.try_clone();
        let _ = file.set_len(size);
        let _ = io::Seek::seek(file, io::SeekFrom::Start(size));
        if self.finish(&[]).is_err()
            && let Ok(file) = again
        {
            let _ = file.set_len(size);
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.last_sync.elapsed() >= self.sync_interval {
            self.writer.get_mut().sync_data()?;
            self.last_sync = Instant::now();
        }
        Ok(())
    }

    fn finish(self, moments: &[SeekPoint]) -> io::Result<u64> {
        let file = self.writer.finish(moments)?;
        Ok(file.metadata()?.len())
    }
}
