/** Chance that is small, fast and the same for all contenders. */
export function randomFrom(seed) {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 4294967296
  }
}

/** The chats' names, as a transport makes them. */
export const chatNames = (count) =>
  Array.from({ length: count }, (_, n) => `meta%3Atienda/${34600000000 + n}`)
