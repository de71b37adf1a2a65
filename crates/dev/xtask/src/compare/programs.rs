//! What is run: every sample, faulty and fixed, on both drivers, and programs that others wrote.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::tools::ToolEnvironment;

/// No run takes longer than so many seconds.
const LIMIT: &str = "60";

pub(crate) struct ComparedCase {
    /// As the document calls it.
    pub(crate) name: String,
    pub(crate) driver: Driver,
    source: ProgramSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Lavapipe,
    Null,
}

enum ProgramSource {
    /// The arguments of the samples' program.
    Sample(Vec<String>),
    Foreign(&'static ForeignProgram),
}

/// A program that is not ours.
struct ForeignProgram {
    name: &'static str,
    /// After how many seconds it is ended, if it does not end itself.
    limit: Option<&'static str>,
    /// `{programs}` is the folder of our scripts.
    words: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// OpenGL over Vulkan.
const ZINK: &[(&str, &str)] = &[
    ("GALLIUM_DRIVER", "zink"),
    ("MESA_LOADER_DRIVER_OVERRIDE", "zink"),
    ("LIBGL_ALWAYS_SOFTWARE", "1"),
    ("LIBGL_KOPPER_DRI2", "1"),
];

const FILTERS: &str =
    "format=yuv420p,hwupload,avgblur_vulkan=sizeX=5,scale_vulkan=w=160:h=120,hwdownload,format=yuv420p";

const FOREIGN: &[ForeignProgram] = &[
    ForeignProgram {
        name: "vkcube",
        limit: None,
        words: &["vkcube", "--c", "60", "--suppress_popups"],
        environment: &[],
    },
    ForeignProgram {
        name: "wgpu",
        limit: None,
        words: &["python3", "{programs}/wgpu_frames.py"],
        environment: &[("WGPU_BACKEND_TYPE", "Vulkan")],
    },
    ForeignProgram {
        name: "qt-quick",
        limit: None,
        words: &["python3", "{programs}/qt_quick.py"],
        environment: &[("QT_QPA_PLATFORM", "xcb"), ("QSG_RHI_BACKEND", "vulkan")],
    },
    ForeignProgram { name: "taichi", limit: None, words: &["python3", "{programs}/taichi_wave.py"], environment: &[] },
    ForeignProgram {
        name: "ffmpeg",
        limit: None,
        words: &[
            "ffmpeg",
            "-loglevel",
            "error",
            "-init_hw_device",
            "vulkan=vk:0",
            "-filter_hw_device",
            "vk",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=320x240:rate=10:duration=2",
            "-frames:v",
            "10",
            "-vf",
            FILTERS,
            "-f",
            "null",
            "-",
        ],
        environment: &[],
    },
    ForeignProgram {
        name: "glmark2",
        limit: None,
        words: &["glmark2-es2", "-s", "320x240", "-b", "build:nframes=100:duration=100"],
        environment: ZINK,
    },
    // It turns until somebody ends it.
    ForeignProgram { name: "glxgears", limit: Some("6"), words: &["glxgears"], environment: ZINK },
];

/// The Python packages of the foreign programs, with all that they need themselves.
pub(crate) const PYTHON_PACKAGES: [&str; 13] = [
    "wgpu==0.32.0",
    "cffi==2.1.1",
    "pycparser==3.12",
    "PySide6-Essentials==6.12.0",
    "shiboken6==6.12.0",
    "taichi==1.7.4",
    "numpy==2.4.6",
    "colorama==0.4.6",
    "dill==0.4.1",
    "rich==15.0.0",
    "markdown-it-py==4.3.0",
    "mdurl==0.1.2",
    "pygments==2.21.0",
];

/// All programs whose name contains a text.
pub(crate) fn all(bench: &ToolEnvironment, filter: &str) -> Result<Vec<ComparedCase>> {
    let listed = std::process::Command::new(bench.built.join("lavascope-samples")).arg("list").output();
    let listed = listed.context("the samples cannot be started")?;
    ensure!(listed.status.success(), "the samples do not list themselves");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut programs = Vec::new();
    for name in listed.lines().filter_map(|it| it.split_whitespace().next()) {
        for driver in [Driver::Lavapipe, Driver::Null] {
            programs.push(sample(name, None, driver));
            if name.starts_with("fault-") {
                programs.push(sample(name, Some("--fixed"), driver));
            }
        }
    }
    for foreign_program in FOREIGN {
        programs.push(ComparedCase {
            name: foreign_program.name.to_owned(),
            driver: Driver::Lavapipe,
            source: ProgramSource::Foreign(foreign_program),
        });
    }
    programs.retain(|it| it.name.contains(filter));
    ensure!(!programs.is_empty(), "no program has `{filter}` in its name");
    Ok(programs)
}

/// Programs of others that end by themselves, whose name contains a text.
pub(crate) fn foreign(filter: &str) -> Result<Vec<ComparedCase>> {
    let wanted = FOREIGN.iter().filter(|it| it.limit.is_none() && it.name.contains(filter));
    let program = |foreign_program: &'static ForeignProgram| ComparedCase {
        name: foreign_program.name.to_owned(),
        driver: Driver::Lavapipe,
        source: ProgramSource::Foreign(foreign_program),
    };
    let all: Vec<ComparedCase> = wanted.map(program).collect();
    ensure!(!all.is_empty(), "no program has `{filter}` in its name");
    Ok(all)
}

fn sample(name: &str, fixed: Option<&str>, driver: Driver) -> ComparedCase {
    let unchecked = (driver == Driver::Null).then_some("--no-check");
    let arguments = [name].into_iter().chain(fixed).chain(unchecked).map(str::to_owned).collect();
    let name = [name].into_iter().chain(fixed).collect::<Vec<_>>().join(" ");
    ComparedCase { name, driver, source: ProgramSource::Sample(arguments) }
}

impl ComparedCase {
    pub(crate) fn is_sample(&self) -> bool {
        matches!(self.source, ProgramSource::Sample(_))
    }

    /// A sample without a fault, or with a fixed one.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_sample() && (!self.name.starts_with("fault-") || self.name.ends_with("--fixed"))
    }

    /// The program and its arguments.
    pub(crate) fn words(&self, bench: &ToolEnvironment) -> Vec<OsString> {
        match &self.source {
            ProgramSource::Sample(arguments) => {
                let program = bench.built.join("lavascope-samples").into_os_string();
                [limit(LIMIT), vec![program], arguments.iter().map(OsString::from).collect()].concat()
            }
            ProgramSource::Foreign(foreign_program) => {
                let scripts = crate::root().join("crates/dev/xtask/programs").display().to_string();
                let words = foreign_program.words.iter().map(|it| OsString::from(it.replace("{programs}", &scripts)));
                [limit(foreign_program.limit.unwrap_or(LIMIT)), words.collect()].concat()
            }
        }
    }

    pub(crate) fn environment(&self, bench: &ToolEnvironment) -> Vec<(OsString, OsString)> {
        let ProgramSource::Foreign(foreign_program) = &self.source else { return Vec::new() };
        let python = [("PYTHONPATH".into(), bench.folder.join("python").into_os_string())];
        let own = foreign_program.environment.iter().map(|it| (it.0.into(), it.1.into()));
        python.into_iter().chain([("PYTHONDONTWRITEBYTECODE".into(), "1".into())]).chain(own).collect()
    }

    pub(super) fn driver_file<'a>(&self, bench: &'a ToolEnvironment) -> &'a Path {
        match self.driver {
            Driver::Lavapipe => Path::new(&bench.lavapipe),
            Driver::Null => &bench.null_driver,
        }
    }
}

/// Asked to end, a program under ours lives on until everything was looked at.
fn limit(seconds: &str) -> Vec<OsString> {
    ["timeout", "--kill-after", "30", seconds].map(OsString::from).into()
}
