//! Digest of packet headers, by which copies of a packet are found.

/// Returns a digest of the IP and TCP headers without fields that each router changes: the time to
/// live (hop limit) and the IPv4 header checksum.
///
/// The ECN field counts. The payload counts only by its length and by the TCP checksum.
#[inline]
pub fn digest(headers: &[u8]) -> u64 {
    /// Masks that clear bytes 8, 10 and 11 of IPv4 and byte 7 of IPv6.
    const IPV4: [u64; 2] = [u64::MAX, !0xffff_00ff];
    const IPV6: [u64; 2] = [u64::MAX >> 8, u64::MAX];
    let masks = if headers.first().is_some_and(|byte| byte >> 4 == 4) { IPV4 } else { IPV6 };
    let (words, rest) = headers.as_chunks::<8>();
    let mut sum = headers.len() as u64;
    for (word, mask) in words.iter().zip(masks.into_iter().chain(std::iter::repeat(u64::MAX))) {
        sum = mix(sum, u64::from_le_bytes(*word) & mask);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(sum, u64::from_le_bytes(last))
}

/// Multiplies both and folds the product, as wyhash does.
#[inline]
const fn mix(sum: u64, word: u64) -> u64 {
    /// 2⁶⁴ divided by the golden ratio, and a prime of xxHash.
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
    let product = (sum ^ FACTORS[0]) as u128 * (word ^ FACTORS[1]) as u128;
    product as u64 ^ (product >> 64) as u64
}
