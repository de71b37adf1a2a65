//! Damaged settings in every source: no panic, and as few problems as promised.

use lavascope_settings::{
    ApplicationSettings, LayerSetting, PROBLEMS_MAX, SETTINGS, SettingValues, Settings, SettingsFile, Sources, resolve,
};
use lavascope_test_support::TestRng;

const ROUNDS: u32 = 5_000;
const PIECES: [&str; 24] = [
    "lavascope_inspect.",
    "khronos_validation.",
    "=",
    " = ",
    "\n",
    "\r\n",
    "#",
    ",",
    ":",
    "..",
    "-",
    "0x",
    "\"",
    "on",
    "off",
    "error",
    "-2147483649",
    "18446744073709551616",
    "\u{feff}",
    "\0",
    "é",
    "GPU_BASED_NONE",
    "enables",
    "1",
];

/// Chooses texts and sources of settings.
struct SettingsRng(TestRng);

impl SettingsRng {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// Names, values and separators in any order, with damage.
    fn text(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..self.below(12) {
            let setting = &SETTINGS[self.below(SETTINGS.len())];
            match self.below(5) {
                0 => text.extend(setting.name.bytes()),
                1 => text.extend(setting.default.bytes()),
                2 => text.extend(format!("lavascope_inspect.{} = ", setting.name).bytes()),
                _ => text.extend(PIECES[self.below(PIECES.len())].bytes()),
            }
        }
        for _ in 0..self.below(3) {
            let at = self.below(text.len() + 1);
            text.insert(at, self.below(256) as u8);
        }
        text
    }

    fn string(&mut self) -> String {
        String::from_utf8_lossy(&self.text()).into_owned()
    }

    fn variable(&mut self) -> (String, String) {
        let prefix = ["LAVASCOPE_", "VK_LAYER_", "VK_", "VK_LAVASCOPE_INSPECT_", ""][self.below(5)];
        let name = match self.below(3) {
            0 => self.string(),
            _ => SETTINGS[self.below(SETTINGS.len())].name.to_ascii_uppercase(),
        };
        (format!("{prefix}{name}"), self.string())
    }

    fn setting(&mut self) -> LayerSetting {
        let layers = ["VK_LAYER_LAVASCOPE_inspect", "VK_LAYER_KHRONOS_validation", ""];
        let name = match self.below(4) {
            0 => self.string(),
            _ => SETTINGS[self.below(SETTINGS.len())].name.to_owned(),
        };
        let number = self.0.next_u64();
        let values = match self.below(9) {
            0 => SettingValues::Bool32(vec![number as u32]),
            1 => SettingValues::Int32(vec![number as i32, 0]),
            2 => SettingValues::Int64(vec![number as i64]),
            3 => SettingValues::Uint32(vec![]),
            4 => SettingValues::Uint64(vec![number]),
            5 => SettingValues::Float32(vec![f32::from_bits(number as u32)]),
            6 => SettingValues::Float64(vec![f64::from_bits(number)]),
            7 => SettingValues::Unknown(number as i32),
            _ => SettingValues::String(vec![self.string(); 1 + number as usize % 2]),
        };
        LayerSetting { layer: layers[self.below(3)].to_owned(), name, values }
    }

    fn sources(&mut self) -> Sources {
        let variables: Vec<_> = (0..self.below(4)).map(|_| self.variable()).collect();
        let number = self.0.next_u64() as i32;
        Sources {
            file: Some(SettingsFile { path: "s.txt".to_owned(), bytes: self.text() }),
            environment: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            application: ApplicationSettings {
                layer_settings: vec![(0..self.below(3)).map(|_| self.setting()).collect()],
                enabled_features: vec![number % 8],
                disabled_features: vec![number],
                disabled_checks: vec![number % 3],
            },
            problems: vec![],
        }
    }
}

#[test]
fn damaged_sources_give_settings_and_problems() {
    let mut random = SettingsRng(TestRng::new(7));
    let (mut changed, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let sources = random.sources();
        let (settings, problems) = resolve(&sources);
        assert!(problems.len() <= PROBLEMS_MAX + 1);
        assert_eq!(resolve(&sources), (settings.clone(), problems.clone()), "the same sources give the same answer");
        for problem in &problems {
            let text = problem.to_string();
            assert!(!text.contains('\n') && text.len() < 2000, "{text}");
        }
        changed += u32::from(settings != Settings::default());
        refused += u32::from(!problems.is_empty());
    }
    assert!(changed > ROUNDS / 4, "{changed} of {ROUNDS} change something");
    assert!(refused > ROUNDS / 4, "{refused} of {ROUNDS} have problems");
}

#[test]
fn garbage_is_bounded() {
    let file =
        |bytes: Vec<u8>| Sources { file: Some(SettingsFile { path: "s.txt".to_owned(), bytes }), ..Sources::default() };
    let (settings, problems) = resolve(&file(b"garbage\n".repeat(100_000)));
    assert_eq!(settings, Settings::default());
    assert_eq!(problems.len(), PROBLEMS_MAX + 1);
    assert_eq!(problems[PROBLEMS_MAX].message, "99950 more problems with settings are not shown");
    let long = format!("lavascope_inspect.{} = {}\n", "x".repeat(400_000), "y".repeat(400_000));
    let (_, problems) = resolve(&file(long.into_bytes()));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().len() < 300, "{}", problems[0]);
}
