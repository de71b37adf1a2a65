//! Which known names are nearest to one that is not known.

/// Longer names are not misspelled but something else.
const LENGTH_MAX: usize = 100;

/// Up to `count` names, nearest first, none of them too far to be meant. Case does not count.
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let wanted = lower(wanted);
    if wanted.len() > LENGTH_MAX {
        return Vec::new();
    }
    // A third of the letters wrong is still the same word, but at least one letter must be right.
    let distance_max = (wanted.len() / 3).max(2).min(wanted.len().saturating_sub(1));
    let mut found: Vec<(usize, &str)> = names
        .filter(|it| it.len().abs_diff(wanted.len()) <= distance_max)
        .map(|it| (distance(&wanted, &lower(it)), it))
        .filter(|it| it.0 <= distance_max)
        .collect();
    found.sort_unstable();
    found.into_iter().take(count).map(|it| it.1).collect()
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
    use super::*;

    #[test]
    fn distance_counts_single_letters() {
        let between = |a: &str, b: &str| distance(&lower(a), &lower(b));
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("VkImage", "vkimage"), 0);
    }

    #[test]
    fn the_nearest_come_first_and_the_far_not_at_all() {
        let names = ["vkCmdDraw", "vkCmdDrawIndexed", "vkCmdCopy", "VkBuffer", "sync", "gpu"];
        assert_eq!(nearest("vkCmdDrwa", names.into_iter(), 3), ["vkCmdDraw"]);
        assert_eq!(nearest("SNYC", names.into_iter(), 1), ["sync"]);
        for far in ["", "x", "qqq", "something_else", &"sync".repeat(100)] {
            assert!(nearest(far, names.into_iter(), 3).is_empty(), "{far}");
        }
    }
}
