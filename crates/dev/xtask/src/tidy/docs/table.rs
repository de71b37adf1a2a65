//! Rows of Markdown tables.

/// The trimmed cells of a table row, or nothing for a line that is none.
pub(crate) fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for char in inner.chars() {
        let cell = cells.last_mut().expect("there is always a last cell");
        match char {
            '|' if escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(String::new()),
            _ => cell.push(char),
        }
        escaped = char == '\\' && !escaped;
    }
    if cells.last().is_some_and(|it| it.trim().is_empty()) {
        cells.pop();
    }
    Some(cells.into_iter().map(|it| it.trim().to_owned()).collect())
}

/// Whether these are the cells of the line between a table's head and its body.
pub(crate) fn is_delimiter_row(cells: &[String]) -> bool {
    cells.iter().all(|it| !it.is_empty() && it.chars().all(|char| matches!(char, '-' | ':')))
}

/// The text between single backticks, in order.
pub(crate) fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_at_bars_that_are_not_escaped() {
        assert_eq!(cells(r"| a | b \| c |  |").unwrap(), ["a", "b | c", ""]);
        assert_eq!(cells("| a | |").unwrap(), ["a", ""]);
        assert_eq!(cells("prose | with a bar"), None);
    }

    #[test]
    fn the_ruler_is_not_a_row() {
        assert!(is_delimiter_row(&cells("| --- | :-: |").unwrap()));
        assert!(!is_delimiter_row(&cells("| --- | x |").unwrap()));
    }

    #[test]
    fn code_spans_are_what_backticks_enclose() {
        assert_eq!(code_spans("a `b` c `d::e`.").collect::<Vec<_>>(), ["b", "d::e"]);
    }
}
