/** How the project's own commands read their arguments, and how the demo shows keys. */
import { describe, expect, it } from '@jest/globals'
import { readArguments } from '../../tools/arguments.mjs'
import { DemoConsole } from '../../tools/demo/console.js'
import type { Mesh } from '../../tools/demo/mesh.js'
import { chatOf, readableKey } from '../../tools/demo/readable-key.js'
import { readSettings } from '../../tools/demo/settings.mjs'

describe('arguments', () => {
  it('are read by name, the last one counts, defaults fill the rest', () => {
    expect(readSettings([])).toEqual({
      ...{ replay: false, inProcess: false, verbose: false },
      ...{ port: 3000, leaseMs: 5000 },
    })
    expect(readSettings(['--replay', '--port=1', '--port=0', '--lease-ms=3000'])).toMatchObject({
      ...{ replay: true, port: 0, leaseMs: 3000 },
    })
  })

  it.each([
    [
      '--repley',
      /Unknown argument --repley\. Did you mean --replay\? Known: --replay, --in-process, --port=…/,
    ],
    ['replay', /Unknown argument replay\. Did you mean --replay\?/],
    ['-port=1', /Did you mean --port\?/],
    ['--Verbose', /Did you mean --verbose\?/],
    ['--toString', /Unknown argument --toString\. Known/],
    ['--', /Unknown argument --\. Known/],
    ['--replay=1', /--replay takes no value; give it as --replay, or leave it out/],
    ['--replay=', /--replay takes no value/],
    ['--port', /a whole number from 0 to 65535 is needed/],
    ['--port=', /a whole number/],
    ['--port=1e3', /a whole number/],
    ['--port=65536', /a whole number from 0 to 65535/],
    ['--lease-ms=999', /a whole number from 1000 to 60000/],
  ])('%s is refused, with what was probably meant', (argument, message) => {
    expect(() => readSettings([argument])).toThrow(message)
  })

  it('a text is not empty', () => {
    const read = (argument: string) => readArguments([argument], { only: { kind: 'text', what: 'a list' } })
    expect(read('--only=a=b')).toEqual({ only: 'a=b' })
    expect(() => read('--only')).toThrow('--only: a list is needed, as --only=….')
    expect(() => read('--only=')).toThrow('a list is needed')
  })
})

describe('the demo', () => {
  it('shows keys as people read them', () => {
    expect(readableKey('webchat%3Atienda/ana%40home')).toBe('webchat:tienda/ana@home')
    expect(readableKey('not%encoded')).toBe('not%encoded')
    expect(chatOf('meta%3Ashop/34600%2F1/x')).toBe('34600/1')
  })

  it('tells who handled what of which chat', () => {
    const printed: string[] = []
    const mesh = { replicas: [{ name: 'a' }] } as unknown as Mesh
    const shown = new DemoConsole(
      mesh,
      (line) => printed.push(line),
      () => undefined,
    )
    const fields = { messageId: 'm1', fence: 7, previousHolder: 'b' }
    shown.show({ event: 'handled', replica: 'a', chat: 'webchat%3Atienda/ana', ...fields })
    expect(printed).toEqual(['  [a] webchat:tienda/ana  message m1  fence 7  before: b'])
  })
})
