/** All packages in one application: their types under every way to resolve modules that they are meant for. */
import { beforeAll, describe, expect, it } from '@jest/globals'
import { Application, packed } from './support/application.js'
import { entriesOf } from './support/packed.mjs'

const app = new Application({ type: 'module' })

beforeAll(async () => {
  const peers = ['@nestjs/common@^12', '@nestjs/core@^12', 'typescript@^5.8', '@types/node@20']
  await app.install(...packed.map(({ manifest }) => manifest.name), ...peers)
  const entries = packed.flatMap(({ manifest }) => entriesOf(manifest))
  const text = entries
    .map((entry, index) => `import * as e${index} from '${entry}'\nvoid e${index}`)
    .join('\n')
  app.write('uses.ts', `${text}\n${USES}`)
  app.write('uses.cts', `${text.replaceAll(/import \* as (\w+) from ('.*')/g, 'import $1 = require($2)')}\n`)
})

/** Types that went missing would be `any`, and the mistakes expected here none. */
const USES = `import { Bot, type Message } from '@botmesh/core'
import { FakeProvider } from '@botmesh/core/testing'
export const bot: Bot = new Bot({ provider: new FakeProvider() })
// @ts-expect-error an option that there is none of
new Bot({ provider: new FakeProvider(), storr: 1 })
export const body = (message: Message): string => message.body
// @ts-expect-error a field that there is none of
export const nothing = (message: Message) => message.nothing
`

const COMMON = ['--target', 'es2022', '--strict', '--noEmit', '--skipLibCheck', '--types', 'node']

describe('types of all packages', () => {
  it.each([
    ['nodenext', 'nodenext', 'uses.ts'],
    ['node16', 'node16', 'uses.ts'],
    ['bundler', 'esnext', 'uses.ts'],
    ['nodenext', 'nodenext', 'uses.cts'],
    ['node10', 'commonjs', 'uses.ts'],
  ])('moduleResolution %s, module %s, %s', async (resolution, module, file) => {
    const options = ['--moduleResolution', resolution, '--module', module, ...COMMON]
    expect(await app.tsc(...options, file)).toEqual({ code: 0, output: '' })
  })

  it('the declarations are sound in themselves', async () => {
    const options = COMMON.filter((one) => one !== '--skipLibCheck')
    const { output } = await app.tsc('--module', 'nodenext', ...options, 'uses.ts')
    // Whether other people's declarations are is not ours to say.
    expect(output.split('\n').filter((line) => line.startsWith('node_modules/@botmesh/'))).toEqual([])
  })
})
