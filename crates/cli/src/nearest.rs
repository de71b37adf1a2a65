//! Which known names are nearest to one that is not known.

/// Up to `count` names, nearest first, none of them too far to be meant. Case does not count.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let wanted = lower(wanted);
    // A third of the letters wrong is still the same word; a short one may have three wrong.
    let distance_max = (wanted.len() / 3).max(3);
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

    fn between(a: &str, b: &str) -> usize {
        distance(&lower(a), &lower(b))
    }

    #[test]
    fn distance_counts_single_letters() {
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("VkImage", "vkimage"), 0);
    }

    #[test]
    fn the_nearest_come_first_and_the_far_not_at_all() {
        let names = ["vkCmdDraw", "vkCmdDrawIndexed", "vkCmdCopy", "VkBuffer"];
        assert_eq!(nearest("vkCmdDrwa", names.into_iter(), 3), ["vkCmdDraw"]);
        assert_eq!(nearest("zzzzzzzzzzzzzzzzzz", names.into_iter(), 3), Vec::<&str>::new());
    }
}
