/**
 * A measured process that hands in a small result; in the round that its job names, the first of its two dies before and
 * the other never ends by itself.
 */
const { prefix, fails, replica } = JSON.parse(process.argv[2])

process.send({ ready: true })
await new Promise((resolve) => process.once('message', resolve))
process.send({ warm: true })
if (fails.includes(prefix)) {
  if (replica === 'replica-0') throw new Error('these are my last words')
  setInterval(() => undefined, 1000)
} else {
  const result = { turns: 10, tookMs: 1000, cpuUs: 100, notes: new Float64Array(0), dropped: 0 }
  process.send(result, () => process.disconnect())
}
