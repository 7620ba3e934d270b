//! Hashes of texts that are alike where the texts are.

use twox_hash::XxHash3_64;

/// Number of consecutive words that are one feature of a text.
const WORDS: usize = 3;

/// The first character of scripts that write no spaces between words, such as those of Chinese and Japanese: each of
/// their characters counts as a word.
const FIRST_WITHOUT_SPACES: char = '\u{2e80}';

/// Returns the 64-bit simhash of a text as 16 hexadecimal digits; `None` if it has no word. Texts that differ in few words
/// have hashes that differ in few bits (Charikar: "Similarity Estimation Techniques from Rounding Algorithms"; Manku, Jain
/// and Das Sarma: "Detecting Near-Duplicates for Web Crawling"). Upper case, punctuation and white space do not count.
pub(crate) fn simhash(text: &str) -> Option<String> {
    let words = words(text);
    if words.is_empty() {
        return None;
    }
    let mut weights = [0_i64; 64];
    for feature in words.windows(WORDS.min(words.len())) {
        let hash = XxHash3_64::oneshot(feature.join(" ").as_bytes());
        for (bit, weight) in weights.iter_mut().enumerate() {
            *weight += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    let bits = weights.iter().enumerate().filter(|(_, weight)| **weight > 0).map(|(bit, _)| 1_u64 << bit);
    Some(format!("{:016x}", bits.sum::<u64>()))
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_within = false;
    for char in text.chars() {
        let is_alone = char >= FIRST_WITHOUT_SPACES;
        if char.is_alphanumeric() {
            match words.last_mut() {
                Some(word) if is_within && !is_alone => word.extend(char.to_lowercase()),
                _ => words.push(char.to_lowercase().collect()),
            }
        }
        is_within = char.is_alphanumeric() && !is_alone;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of bits in which the hashes of two texts differ.
    fn distance(one: &str, other: &str) -> u32 {
        let hash = |text: &str| u64::from_str_radix(&simhash(text).unwrap(), 16).unwrap();
        (hash(one) ^ hash(other)).count_ones()
    }

    /// A text of 400 words, none of which another text with other numbers has.
    fn text(from: usize) -> String {
        (from..from + 400).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_text_that_differs_in_a_word_is_near_and_another_text_is_far() {
        let original = text(0);
        assert_eq!(distance(&original, &format!("  {}!\n", original.to_uppercase())), 0);
        assert!(distance(&original, &original.replace("word200", "changed")) <= 6);
        assert!(distance(&original, &text(1000)) > 16);
    }

    #[test]
    fn the_hash_of_a_text_stays_what_it_is_and_a_text_without_words_has_none() {
        // By the same steps in Python, with the package xxhash.
        assert_eq!(simhash("The quick brown fox jumps over the lazy dog.").unwrap(), "5cc1c8efc0c9b905");
        assert_eq!(simhash("Hat").unwrap(), "ead1aafb9fd4a704");
        assert_eq!((simhash(""), simhash(" -- \n")), (None, None));
    }

    #[test]
    fn each_character_of_a_script_without_spaces_is_a_word() {
        assert_eq!(words("Rust言語2024，Don't"), ["rust", "言", "語", "2024", "don", "t"]);
    }
}
