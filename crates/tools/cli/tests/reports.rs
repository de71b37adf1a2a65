//! `run` with programs that stand in for the layer: scripts that write what its processes would report.

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use lavascope_test_support::wait_until;
use serde_json::Value;

use common::{home, lavascope, output, text};

const HAZARD: &str = r#"{"finding":{"code":"SYNC-HAZARD-READ-AFTER-WRITE","severity":"error","message":"a read of VkBuffer#1\nmore","occurrences":2}}"#;

/// A line that reports this shell as a Vulkan process, and ones that follow.
fn report(lines: &[&str]) -> String {
    let mut script = r#"say() { printf '%s\n' "$1" >> "$LAVASCOPE_REPORT/$$.jsonl"; }
say '{"process":{"pid":'$$',"program":"/bin/app","version":"0.1.0"}}'
"#
    .to_owned();
    for line in lines {
        script.push_str(&format!("say '{line}'\n"));
    }
    script
}

fn run(home: &Path, arguments: &[&str], script: &str) -> Output {
    output(lavascope(home).arg("run").args(arguments).args(["--", "sh", "-c", script]))
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn exit_codes() {
    let home = home("exit-codes");
    let fine = report(&[r#"{"end":{}}"#]);
    let warning = report(&[r#"{"finding":{"code":"X","severity":"warning","message":"t","occurrences":1}}"#]);
    let info = report(&[r#"{"finding":{"code":"X","severity":"info","message":"t","occurrences":1}}"#]);
    let bug = report(&[HAZARD, r#"{"bug":{"where":"vkCmdDraw","text":"t"}}"#]);
    let hazard = report(&[HAZARD]);
    for (script, own, app) in [
        (fine.as_str(), 0, 0),
        (&warning, 1, 0),
        (&info, 0, 0),
        (&hazard, 1, 0),
        (&bug, 2, 0),
        ("exit 0", 2, 0),
        (&format!("{hazard}exit 37"), 37, 37),
        ("exit 37", 37, 37),
        (&format!("{fine}kill -9 $$"), 137, 137),
        (&format!("{hazard}kill -SEGV $$"), 139, 139),
    ] {
        assert_eq!(code(&run(&home, &[], script)), Some(own), "{script}");
        assert_eq!(code(&run(&home, &["--exit-code", "app"], script)), Some(app), "{script}");
    }
}

#[test]
fn nothing_is_said_where_nothing_is_to_be_said() {
    let output = run(&home("silent"), &[], &format!("{}echo out; echo err >&2", report(&[r#"{"end":{}}"#])));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("out\n".to_owned(), "err\n".to_owned()));
}

#[test]
fn a_signal_is_named() {
    let output = run(&home("signal"), &[], "kill -SEGV $$");
    assert!(text(&output.stderr).starts_with("lavascope: `sh` was ended by SIGSEGV\n"), "{}", text(&output.stderr));
}

#[test]
fn a_run_that_nothing_reported_from_says_what_to_check() {
    let output = run(&home("nothing"), &[], "exit 0");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("lavascope: `sh` created no Vulkan instance under the layer, so nothing was checked: "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("`lavascope doctor`"), "{said}");
}

/// Two processes, one of them a child; what both say is said once, and findings add up.
#[test]
fn processes_are_merged() {
    let child = report(&[
        HAZARD,
        r#"{"problem":{"severity":"warning","place":"vk_layer_settings.txt:3","text":"there is no setting `x`"}}"#,
        r#"{"unknown":{"command":"vkZooEXT"}}"#,
        r#"{"stats":{"threads":1,"calls":12,"by_command":{"vkCmdDraw":2,"vkCmdBindPipeline":10}}}"#,
        r#"{"end":{}}"#,
    ]);
    let parent = report(&[
        HAZARD,
        r#"{"problem":{"severity":"warning","place":"vk_layer_settings.txt:3","text":"there is no setting `x`"}}"#,
        r#"{"unknown":{"command":"vkFooEXT"}}"#,
        r#"{"unknown":{"command":"vkZooEXT"}}"#,
        r#"{"from-a-newer-layer":{"command":"vkFooEXT"}}"#,
        r#"{"stats":{"threads":3,"calls":300,"by_command":{"vkCmdDraw":300}}}"#,
    ]);
    let home = home("merged");
    fs::write(home.join("child.sh"), child).expect("writable");
    let script = format!("{parent}sh {0}/child.sh\nprintf '{{\"fin' >> $LAVASCOPE_REPORT/$$.jsonl\n", home.display());
    let output = run(&home, &["--stats"], &script);
    let said = text(&output.stderr);
    let (head, table) = said.split_once("lavascope: 2 processes, 4 threads, 312 calls\n").expect(&said);
    let want = "error[RAW]: a read of VkBuffer#1
note: 4 times; `lavascope explain RAW`

lavascope: 1 error
lavascope: warning: vk_layer_settings.txt:3: there is no setting `x`
lavascope: warning: 2 commands not understood, newer than Vulkan ";
    assert!(head.starts_with(want), "{said}");
    assert!(head.ends_with(":\n  vkFooEXT, vkZooEXT\n"), "{said}");
    let rows: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(rows[0][1..], ["/bin/app", "3", "threads", "300", "calls"]);
    assert_eq!(rows[1][1..], ["/bin/app", "1", "thread", "12", "calls"]);
    assert_eq!(rows[2], ["by", "command,", "in", "all", "of", "them"]);
    assert_eq!(rows[3..], [vec!["302", "vkCmdDraw"], vec!["10", "vkCmdBindPipeline"]]);
}

#[test]
fn statistics_are_asked_for_and_cut_to_the_most_frequent() {
    let home = home("stats");
    let by_command: Vec<String> = (0..25).map(|it| format!("\"vkCmd{it:02}\":{}", 100 - it)).collect();
    let line = format!(r#"{{"stats":{{"threads":1,"calls":2200,"by_command":{{{}}}}}}}"#, by_command.join(","));
    let script = format!("[ \"$LAVASCOPE_STATS\" = 1 ] || exit 9\n{}", report(&[&line]));
    assert_eq!(code(&run(&home, &[], &script)), Some(9));
    let top = text(&run(&home, &["--stats"], &script).stderr);
    assert_eq!(top.lines().count(), 22, "{top}");
    assert!(top.contains("  100  vkCmd00\n   99  vkCmd01\n"), "{top}");
    assert!(top.ends_with("  390  5 commands more (`--stats=all`)\n"), "{top}");
    let all = text(&run(&home, &["--stats=all"], &script).stderr);
    assert_eq!(all.lines().count(), 26, "{all}");
}

#[test]
fn a_process_that_sends_no_counts_is_reported() {
    let said = text(&run(&home("no-counts"), &["--stats"], &report(&[])).stderr);
    let want = "/bin/app  sent no counts: it was stopped, or never destroyed its instance\n";
    assert!(said.starts_with("lavascope: 1 process, 0 threads, 0 calls\n") && said.ends_with(want), "{said}");
}

#[test]
fn json_has_everything_and_leaves_the_output_of_the_program_alone() {
    let home = home("json");
    let file = home.join("report.json");
    let script = format!("{}echo out; cd /; exit 3", report(&[HAZARD, r#"{"end":{}}"#]));
    let to_file = run(&home, &["--json", &file.display().to_string()], &script);
    assert_eq!((code(&to_file), text(&to_file.stdout)), (Some(3), "out\n".to_owned()));
    let document: Value = serde_json::from_slice(&fs::read(&file).expect("written")).expect("JSON");
    assert_eq!(document["exit_code"], 3);
    assert_eq!(document["signal"], Value::Null);
    assert_eq!(document["command"][0], "sh");
    assert_eq!(document["findings"][0]["occurrences"], 2);
    assert_eq!(document["findings"][0]["message"], "a read of VkBuffer#1\nmore");
    assert_eq!(document["processes"][0]["has_ended"], true);
    let to_stdout = text(&run(&home, &["--json", "-"], &script).stdout);
    let again: Value =
        serde_json::from_str(to_stdout.strip_prefix("out\n").expect("first the program's")).expect("JSON");
    assert_eq!(again["findings"], document["findings"]);
}

#[test]
fn the_folder_of_reports_goes_away() {
    let home = home("folder");
    let script = format!("{}echo $LAVASCOPE_REPORT; [ -d $LAVASCOPE_REPORT ] || exit 9", report(&[]));
    let output = run(&home, &[], &script);
    assert_eq!(code(&output), Some(0));
    let folder = PathBuf::from(text(&output.stdout).trim_end());
    assert!(folder.is_absolute() && !folder.exists(), "{}", folder.display());
}

#[test]
fn a_process_that_outlives_the_program_is_told() {
    let home = home("outlives");
    // Without our pipes, or we would wait for their end.
    let child = format!("exec >&- 2>&- <&-\n{}exec sleep 60", report(&[]));
    fs::write(home.join("child.sh"), child).expect("writable");
    let script = format!(
        "sh {}/child.sh & echo $!; while [ ! -s $LAVASCOPE_REPORT/$!.jsonl ]; do sleep 0.01; done",
        home.display()
    );
    let output = run(&home, &[], &script);
    let child = text(&output.stdout).trim_end().to_owned();
    let said = text(&output.stderr);
    Command::new("kill").arg(&child).status().expect("there is a kill");
    assert!(said.contains(&format!("/bin/app (process {child}) still runs")), "{said}");
}

/// The program waits for a signal and says which came.
fn waiting(home: &Path) -> (Child, PathBuf) {
    let ready = home.join("ready");
    let traps = "trap 'echo INT; exit 5' INT; trap 'echo TERM; exit 6' TERM; trap 'echo HUP; exit 7' HUP";
    let script = format!("{}{traps}; touch '{}'; while :; do sleep 0.05; done", report(&[HAZARD]), ready.display());
    let mut command = lavascope(home);
    // A group of its own, as a terminal gives to a command.
    command.args(["run", "--", "sh", "-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    (command.spawn().expect("it starts"), ready)
}

fn signalled(name: &str, signal: &str, target: impl FnOnce(u32) -> String) -> Output {
    let home = home(name);
    let (child, ready) = waiting(&home);
    wait_until("the program has begun", || ready.exists());
    let kill = Command::new("kill").args([signal, "--", &target(child.id())]).status().expect("there is a kill");
    assert!(kill.success());
    child.wait_with_output().expect("it ends")
}

#[test]
fn ctrl_c_reaches_the_program_once_and_the_report_is_still_merged() {
    let output = signalled("interrupt", "-INT", |pid| format!("-{pid}"));
    assert_eq!((code(&output), text(&output.stdout)), (Some(5), "INT\n".to_owned()));
    assert!(text(&output.stderr).contains("error[RAW]: a read of VkBuffer#1\n"), "{}", text(&output.stderr));
}

#[test]
fn what_is_sent_to_us_alone_is_passed_on() {
    let output = signalled("terminate", "-TERM", |pid| pid.to_string());
    assert_eq!((code(&output), text(&output.stdout)), (Some(6), "TERM\n".to_owned()));
    assert!(text(&output.stderr).contains("error[RAW]: a read of VkBuffer#1\n"), "{}", text(&output.stderr));
    assert_eq!(code(&signalled("hang-up", "-HUP", |pid| pid.to_string())), Some(7));
}

/// `nohup` ignores the signal for all that it starts, and we are no exception.
#[test]
fn an_ignored_signal_stays_ignored() {
    let home = home("nohup");
    let script = format!("{}kill -HUP $PPID; kill -HUP $$; echo lived", report(&[]));
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run -- sh -c \"$1\"", env!("CARGO_BIN_EXE_lavascope"), &script]);
    let settings = lavascope(&home);
    shell.envs(settings.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert_eq!(text(&output(&mut shell).stdout), "lived\n");
}
