//! FFmpeg's Vulkan filters: with checks, they give the same bytes as without. They pick images of short arrays by a number
//! that is the same for all invocations, and lavapipe samples in another way where it is not.
//!
//! Without `avgblur_vulkan`: its invocations race for memory of their workgroup, so that its frames differ from run to
//! run also without the layer.

use std::process::Command;

use crate::common::{output, text};
use crate::test_environment::TestEnvironment;

const FILTERS: [&str; 4] =
    ["scale_vulkan=w=40:h=30", "chromaber_vulkan=dist_x=2:dist_y=1", "flip_vulkan", "gblur_vulkan=sigma=1"];

/// The hash of the frames that a filter makes.
fn frames(command: &mut Command, filter: &str) -> String {
    let chain = format!("format=yuv420p,hwupload,{filter},hwdownload,format=yuv420p");
    command.args(["-nostdin", "-v", "error", "-init_hw_device", "vulkan=v:0", "-filter_hw_device", "v"]);
    command.args(["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10", "-frames:v", "2", "-vf", &chain]);
    let output = output(command.args(["-f", "md5", "-"]));
    let (hash, said) = (text(&output.stdout), text(&output.stderr));
    assert!(hash.starts_with("MD5="), "{filter}: {hash}\n{said}: `apt-get install ffmpeg` if it is not there");
    hash
}

#[test]
fn filters_give_the_same_frames_with_checks() {
    let stage = TestEnvironment::new("filters");
    for filter in FILTERS {
        let bare = frames(&mut stage.bare("ffmpeg"), filter);
        let options = ["--sync", "--gpu", "--printf", "--exit-code", "app"];
        assert_eq!(frames(&mut stage.under_layer(&options, "ffmpeg"), filter), bare, "{filter}");
    }
}
