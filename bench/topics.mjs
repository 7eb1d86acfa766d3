/** What each benchmark is called, in the order of the report. */
export const TOPICS = {
  a: 'throughput: turns on 10,000 chats',
  b: 'hand-off: one contended chat, two processes, handler of 2 ms',
  c: 'contended throughput: turns on 50 chats',
  d: 'idle cost: an idle mesh for ten seconds, leases of 3 s',
  e: 'recovery: the holder of a turn is killed, leases of 5 s',
  f: 'cost of the commit: a checkpoint of 400 bytes, an inbound id, neither',
  g: 'whole messages through Bot',
  h: 'cost of durability: a persistent flow step with one send',
  i: 'cost of each store: a persistent step / two plain statements of its driver',
  j: 'fenced locks: acquired and released, 10,000 names',
  k: 'memory: chats that spoke once, turns that wait; dedupeMs 10 s, leaseMs 3 s',
  p: 'reading what platforms deliver / handling messages through Bot, on Redis, 64 in flight',
}
