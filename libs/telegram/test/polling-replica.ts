/** A replica that polls, against a double of its own: made before each test of the spec that imports this. */
import { afterEach, beforeEach } from '@jest/globals'
import { RecordingSink } from '@botmesh/core/testing'
import { TelegramProvider } from '@botmesh/telegram'
import { TelegramApiDouble } from '../../../test/doubles/telegram-api.js'
import { TOKEN } from './samples.js'

/** The platform of the test that runs. */
export let telegram: TelegramApiDouble
const started: TelegramProvider[] = []

beforeEach(async () => {
  telegram = await new TelegramApiDouble({ token: TOKEN }).listen()
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((provider) => provider.stop()))
  await telegram.close()
})

/** Stopped after the test. */
export function make(options: object = {}): TelegramProvider {
  const provider = new TelegramProvider({
    token: TOKEN,
    account: 'tienda',
    apiRoot: telegram.url,
    ...options,
  })
  started.push(provider)
  return provider
}

/** A replica that leads: its provider polls until `lead` is aborted or it is stopped. */
export async function lead(options: { sink?: RecordingSink } = {}) {
  const provider = make()
  const sink = options.sink ?? new RecordingSink()
  const leadership = new AbortController()
  await provider.start(sink, leadership.signal)
  await sink.until(() => provider.state.status === 'open')
  return { provider, sink, leadership }
}
