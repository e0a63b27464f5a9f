//! A batch as pieces of partitions that are read side by side: pure arithmetic, as in Spark.

use super::offset::TopicPartition;

/// The offsets [from, until) of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) place: TopicPartition,
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Piece {
    fn size(&self) -> i64 {
        self.until.saturating_sub(self.from)
    }

    /// So many pieces of nearly the same size, the rest with the last.
    fn split(self, parts: usize) -> Vec<Self> {
        let (mut from, mut left) = (self.from, self.size());
        let parts = parts.min(usize::try_from(left).unwrap_or(usize::MAX));
        let pieces = (0..parts).map(|part| {
            let size = left / i64::try_from(parts - part).unwrap_or(i64::MAX);
            left -= size;
            let until = (from + size).min(self.until);
            Self { place: self.place.clone(), from: std::mem::replace(&mut from, until), until }
        });
        pieces.filter(|piece| piece.size() > 0).collect()
    }
}

/// Cuts ranges that are longer than `most` offsets, then the longest ones further until there are about `least` pieces.
/// Empty ranges go.
pub(super) fn split(ranges: Vec<Piece>, most: Option<u64>, least: Option<usize>) -> Vec<Piece> {
    let cut = |range: Piece| match most {
        Some(most) if range.size() as u64 > most => {
            let parts = usize::try_from((range.size() as u64).div_ceil(most)).unwrap_or(usize::MAX);
            range.split(parts)
        }
        _ => vec![range],
    };
    let ranges: Vec<Piece> = ranges.into_iter().filter(|range| range.size() > 0).flat_map(cut).collect();
    match least {
        Some(least) if least > ranges.len() => spread(ranges, least),
        _ => ranges,
    }
}

fn spread(ranges: Vec<Piece>, least: usize) -> Vec<Piece> {
    let sum = |ranges: &[&Piece]| ranges.iter().map(|range| range.size() as f64).sum::<f64>();
    let parts = |size: i64, total: f64, wanted: usize| ((size as f64 / total * wanted as f64).round() as usize).max(1);
    let total = sum(&ranges.iter().collect::<Vec<_>>());
    // Small ranges stay whole; what is left of the wanted number is shared among the others.
    let (small, large): (Vec<&Piece>, Vec<&Piece>) =
        ranges.iter().partition(|range| parts(range.size(), total, least) == 1);
    let (large_total, wanted) = (sum(&large), least.saturating_sub(small.len()).max(1));
    ranges
        .iter()
        .flat_map(|range| match parts(range.size(), total, least) {
            1 => vec![range.clone()],
            _ => range.clone().split(parts(range.size(), large_total, wanted)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(partition: i32, from: i64, until: i64) -> Piece {
        Piece { place: TopicPartition::new("t", partition), from, until }
    }

    fn ends(pieces: &[Piece]) -> Vec<(i32, i64, i64)> {
        pieces.iter().map(|piece| (piece.place.partition, piece.from, piece.until)).collect()
    }

    #[test]
    fn without_wishes_there_is_a_piece_per_partition_with_something() {
        let ranges = vec![piece(0, 3, 9), piece(1, 4, 4), piece(2, 0, 1)];
        assert_eq!(ends(&split(ranges, None, None)), [(0, 3, 9), (2, 0, 1)]);
    }

    #[test]
    fn the_longest_ranges_are_cut_for_more_pieces() {
        assert_eq!(ends(&split(vec![piece(0, 0, 5)], None, Some(3))), [(0, 0, 1), (0, 1, 3), (0, 3, 5)]);
        let skewed = split(vec![piece(0, 0, 1), piece(1, 0, 1000)], None, Some(4));
        assert_eq!(ends(&skewed), [(0, 0, 1), (1, 0, 333), (1, 333, 666), (1, 666, 1000)]);
        assert_eq!(split(vec![piece(0, 0, 5), piece(1, 0, 5)], None, Some(2)).len(), 2);
        assert_eq!(split(vec![piece(0, 0, 2)], None, Some(100)).len(), 2, "a piece has at least one offset");
    }

    #[test]
    fn no_piece_is_longer_than_asked_for() {
        let pieces = split(vec![piece(0, 10, 45), piece(1, 0, 10)], Some(10), None);
        assert_eq!(ends(&pieces), [(0, 10, 18), (0, 18, 27), (0, 27, 36), (0, 36, 45), (1, 0, 10)]);
        let both = split(vec![piece(0, 0, 40)], Some(20), Some(4));
        assert_eq!(both.len(), 4);
        assert!(split(vec![piece(0, 0, 7)], Some(1), None).iter().all(|piece| piece.size() == 1));
    }

    #[test]
    fn pieces_add_up_to_their_range() {
        for parts in 1..12 {
            let pieces = split(vec![piece(0, 100, 223)], None, Some(parts));
            assert_eq!(pieces.first().map(|piece| piece.from), Some(100));
            assert_eq!(pieces.last().map(|piece| piece.until), Some(223));
            assert!(pieces.windows(2).all(|pair| pair[0].until == pair[1].from), "{pieces:?}");
        }
    }
}
