//! Which known name is nearest to one that is not known.

/// Longer names are not misspelled but something else.
const LENGTH_MAX: usize = 100;

/// The nearest name, if any is near enough to be meant. Case does not count.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if wanted.len() > LENGTH_MAX {
        return None;
    }
    let wanted = lower(wanted);
    // A third of the letters wrong is still the same word, but at least one letter must be right.
    let distance_max = (wanted.len() / 3).max(2).min(wanted.len().saturating_sub(1));
    names.map(|it| (distance(&wanted, &lower(it)), it)).filter(|it| it.0 <= distance_max).min().map(|it| it.1)
}

fn lower(text: &str) -> Vec<char> {
    text.chars().map(|it| it.to_ascii_lowercase()).collect()
}

/// Levenshtein: the fewest letters to add, drop or change.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = || ["sync", "gpu", "capture", "capture_frames"].into_iter();
        assert_eq!(nearest("snyc", names()), Some("sync"));
        assert_eq!(nearest("CAPTRUE", names()), Some("capture"));
        assert_eq!(nearest("gpuu", names()), Some("gpu"));
        for far in ["", "x", "qqq", "something_else", &"sync".repeat(100)] {
            assert_eq!(nearest(far, names()), None, "{far}");
        }
    }
}
