//! The thread that compresses blocks and writes them to the file, so that no other thread waits for that.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lavascope_trace::{BlockKind, BlockWriter, Codec, RawBlock, SeekPoint, WrittenBlock};

/// Largest number of blocks in the queue. If it is full, the reader waits, and then the streams fill up.
const QUEUED_BLOCKS_MAX: usize = 32;

/// A job for the writer thread.
enum WriteJob {
    Block(RawBlock),
    /// Flush everything written so far to the disk.
    Sync,
    End(Vec<SeekPoint>),
}

/// The handle of the writer thread.
pub(crate) struct FileWriter {
    jobs: SyncSender<WriteJob>,
    written: Receiver<WrittenBlock>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl FileWriter {
    /// Starts the thread. `every` is the interval at which written data are flushed to the disk.
    pub(crate) fn start(writer: BlockWriter<File>, codec: Codec, every: Duration) -> io::Result<FileWriter> {
        let (jobs, todo) = sync_channel(QUEUED_BLOCKS_MAX);
        let (written_sender, written) = channel();
        let work = move || {
            FileWriterThread { writer, codec, sync_interval: every, last_sync: Instant::now() }
                .write_until_closed(&todo, &written_sender)
        };
        let thread = std::thread::Builder::new().name("lavascope-writer".into()).spawn(work)?;
        Ok(FileWriter { jobs, written, thread: Some(thread) })
    }

    /// Queues a block. Returns false if the thread has stopped after an error.
    pub(crate) fn queue_block(&self, block: RawBlock) -> bool {
        self.jobs.send(WriteJob::Block(block)).is_ok()
    }

    pub(crate) fn sync(&self) -> bool {
        self.jobs.send(WriteJob::Sync).is_ok()
    }

    /// The blocks that were written since the last call.
    pub(crate) fn written(&self) -> impl Iterator<Item = WrittenBlock> + '_ {
        self.written.try_iter().filter(|it| it.kind == BlockKind::Calls)
    }

    /// Ends the file. Returns its size, or the error.
    pub(crate) fn end(&mut self, seek_points: &[SeekPoint]) -> io::Result<u64> {
        let _ = self.jobs.send(WriteJob::End(seek_points.to_vec()));
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
    fn write_until_closed(
        mut self,
        todo: &Receiver<WriteJob>,
        written_sender: &Sender<WrittenBlock>,
    ) -> io::Result<u64> {
        while let Ok(job) = todo.recv() {
            let result = match job {
                WriteJob::Block(block) => self.writer.write_compressed(block, self.codec).map(|written_block| {
                    // When the capture ends, nothing receives this any more.
                    let _ = written_sender.send(written_block);
                }),
                WriteJob::Sync => self.sync(),
                WriteJob::End(seek_points) => return self.finish(&seek_points),
            };
            if let Err(error) = result {
                self.close();
                return Err(error);
            }
        }
        self.finish(&[])
    }

    /// Ends a file after a write error. All complete blocks are valid. The index may still fit where the half-written
    /// block begins; a file without an index can be read as well.
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

    fn finish(self, seek_points: &[SeekPoint]) -> io::Result<u64> {
        let file = self.writer.finish(seek_points)?;
        Ok(file.metadata()?.len())
    }
}
