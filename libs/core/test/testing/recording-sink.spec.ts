/** What a test is told when a provider does not do what it waits for. */
import { describe, expect, it } from '@jest/globals'
import { RecordingSink } from '../../src/testing/index.js'

describe('X1: a sink that records', () => {
  it('waits for what comes, and says what came instead', async () => {
    const sink = new RecordingSink()
    const opened = sink.until(({ states }) => states.some(({ status }) => status === 'open'))
    sink.state({ status: 'connecting' })
    sink.state({ status: 'open' })
    await opened
    sink.error(new Error('no code'))
    sink.pairing({ kind: 'code', value: 'SECRET' })
    const error = await sink.until(({ messages }) => messages.length > 0, 5).catch(String)
    expect(error).toMatch(/Not within 5 ms.*"open".*no code.*"code"/)
    expect(error).not.toContain('SECRET')
  })
})
