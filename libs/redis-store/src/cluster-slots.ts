/**
 * Where names lie in a Redis Cluster. Chats are spread over a fixed number of shards by the same function that Redis
 * spreads keys by; each shard is one hash tag, and the tags are chosen so that their slots are spread evenly, because a
 * cluster gives each of its masters a range of slots.
 */
const SLOTS = 16_384

/** CRC-16 with polynomial 0x1021, most significant bit first. */
const CRC = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** Slot of a hash tag, or of any name without one. */
export function slotOf(name: string): number {
  let crc = 0
  for (const byte of Buffer.from(name)) crc = ((crc << 8) ^ (CRC[(crc >> 8) ^ byte] ?? 0)) & 0xffff
  return crc % SLOTS
}

/**
 * Shard of a chat key, a user id or any other name. Of a name with several parts the first and the last one count:
 * those of a chat `<provider>/<chat>/<participant>` are those of its user `<provider>/<user>`, whose state then comes
 * along with the turn.
 */
export function shardOf(name: string, shards: number): number {
  const first = name.indexOf('/')
  const last = name.lastIndexOf('/')
  const counted = first === last ? name : name.slice(0, first) + name.slice(last)
  return Math.floor((slotOf(counted) * shards) / SLOTS)
}

const tags = new Map<number, readonly string[]>()

/** Hash tags of `shards` shards, in the order of their slots. */
export function shardTags(shards: number): readonly string[] {
  const known = tags.get(shards)
  if (known) return known
  const made: string[] = Array.from({ length: shards }, () => '')
  for (let n = 0, left = shards; left > 0; n += 1) {
    const shard = Math.floor((slotOf(String(n)) * shards) / SLOTS)
    if (made[shard] !== '') continue
    made[shard] = String(n)
    left -= 1
  }
  tags.set(shards, made)
  return made
}
