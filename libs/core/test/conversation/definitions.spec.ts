/** Mistakes in definitions are errors at start that name the culprit; triggers; the plain-JSON check. */
import { describe, expect, it } from '@jest/globals'
import { ConfigError } from '../../src/contracts/errors.js'
import { FlowRegistry, defineFlow, type FlowDefinition } from '../../src/conversation/index.js'
import { literalGotos } from '../../src/conversation/goto-check.js'
import { plainCopy } from '../../src/conversation/plain-json.js'
import { Replica } from './mini-runtime.js'
import { World } from './world.js'

function frozen(define: (registry: FlowRegistry) => unknown): FlowRegistry {
  const registry = new FlowRegistry()
  define(registry)
  registry.freeze()
  return registry
}

describe('bad definitions', () => {
  it.each<[string, (registry: FlowRegistry) => unknown, RegExp]>([
    ['a flow without steps', (r) => r.flow('empty'), /Flow "empty" has no steps/],
    ['two flows of one name', (r) => [r.flow('f').do(() => 1), r.flow('f').do(() => 1)], /named "f"/],
    [
      'a flow and a conversation of one name',
      (r) => [r.flow('f').do(() => 1), r.conversation('f', () => 1)],
      /named "f"/,
    ],
    [
      'two steps of one name',
      (r) =>
        r
          .flow('f')
          .do('a', () => 1)
          .ask('a', '?'),
      /two steps named "a"/,
    ],
    [
      'a goto to a step that does not exist',
      (r) => r.flow('f').step('size', (c) => c.goto('sise')),
      /Step "size" of flow "f" goes to "sise", which the flow does not have; did you mean "size"\?/,
    ],
    [
      'a step without code',
      (r) => r.flow('f').step('a', undefined as never),
      /Step "a" of flow "f" is undefined/,
    ],
    ['a trigger of no use', (r) => r.flow('f', { on: [''] }).do(() => 1), /Option "on" of "f"/],
    ['an empty form', (r) => r.flow('f').form('who', []), /Form "who" of flow "f"/],
    ['an unknown option', (r) => r.flow('f', { onn: 'x' } as never), /no option "onn"; did you mean "on"/],
    ['a flow without a name', (r) => r.flow(''), /Option "name"/],
    ['a conversation without code', (r) => r.conversation('c', 5 as never), /Conversation "c" is 5/],
  ])('%s is a ConfigError', (_what, define, message) => {
    expect(() => frozen(define)).toThrow(message)
    expect(() => frozen(define)).toThrow(ConfigError)
  })

  it('defineFlow complains where the definition stands', () => {
    expect(() => defineFlow({ name: 'f', steps: [] })).toThrow(/Flow "f" has no steps/)
    expect(() => defineFlow({ name: 'f', step: [] } as unknown as FlowDefinition)).toThrow(
      /did you mean "steps"/,
    )
  })

  it('nothing can be changed or added after start', () => {
    const registry = new FlowRegistry()
    const flow = registry.flow('f').do(() => 1)
    registry.freeze()
    expect(() => flow.ask('a', '?')).toThrow(/the bot has started/)
    expect(() => flow.persistent()).toThrow(/the bot has started/)
    expect(() => registry.flow('g')).toThrow(/the bot has started/)
  })

  it('entering an unknown flow suggests the nearest name', async () => {
    const bot = new Replica(new World(), 'a', (r) => void r.flow('order').do(() => 1))
    await expect(bot.handle((span) => bot.engine.enter(span, 'ordr'))).rejects.toThrow(/did you mean "order"/)
  })

  it('bad options of an ask are reported by name', async () => {
    const bot = new Replica(new World(), 'a', (r) => {
      r.flow('f', { on: 'f' }).ask('a', '?', { maxAttempts: 0 })
      r.flow('g', { on: 'g' }).ask('a', '?', { timeout: '5 years' as never })
    })
    await bot.say('f')
    await bot.say('g')
    expect(bot.reported.map(String)).toEqual([
      expect.stringContaining('maxAttempts'),
      expect.stringContaining('"timeout" is "5 years"'),
    ])
  })
})

describe('literal gotos are found at start', () => {
  it.each<[(c: never) => unknown, string[]]>([
    [(c: { goto(s: string): unknown }) => c.goto('x'), ['x']],
    [async (c: { goto(s: string): unknown }) => c.goto('x'), ['x']],
    [
      function named(c: { goto(s: string): unknown }) {
        // return c.goto('commented')
        /* c.goto('also') */
        return c.goto('a') ?? c.goto('b') ?? c.goto('a')
      },
      ['a', 'b'],
    ],
    [(c: { goto(s: string): unknown }) => c.goto(['com', 'puted'].join('')), []],
    [(page: { c: { goto(s: string): unknown } }) => page.c.goto('https://example.org'), []],
    [() => 1, []],
  ])('%s', (source, found) => {
    expect(literalGotos(source)).toEqual(found)
  })

  it('also in methods of classes', () => {
    class Order {
      async confirm(c: { goto(step: string): unknown }) {
        return c.goto('size')
      }
    }
    const confirm = Reflect.get(Order.prototype, 'confirm') as (c: never) => unknown
    expect(literalGotos(confirm)).toEqual(['size'])
  })
})

describe('triggers', () => {
  const registry = frozen((r) => {
    r.flow('text', { on: ['Pedido', 'order'] }).do(() => 1)
    r.flow('pattern', { on: /^buy/gi }).do(() => 1)
    r.flow('none').do(() => 1)
    r.conversation('talk', () => 1, { on: 'talk' })
  })
  it.each([
    [' pedido\n', 'text'],
    ['ORDER', 'text'],
    ['order now', null],
    ['buy this', 'pattern'],
    ['BUY that', 'pattern'],
    ['talk', 'talk'],
    ['', null],
  ])('%j enters %s', (body, name) => {
    expect(registry.triggeredBy(new World().message(body))).toBe(name)
  })
})

describe('H3: plain JSON', () => {
  class Money {}
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  it.each<[unknown, string, string]>([
    [{ a: new Date(0) }, 's.a', 'Date'],
    [{ a: [1, { b: new Money() }] }, 's.a[1].b', 'Money'],
    [{ f: () => 1 }, 's.f', 'function'],
    [{ n: NaN }, 's.n', 'NaN'],
    [{ n: 1n }, 's.n', 'bigint'],
    [{ m: new Map() }, 's.m', 'Map'],
    [[undefined], 's[0]', 'undefined'],
  ])('refuses %p', (value, path, what) => {
    expect(plainCopy(value, 's')).toEqual({ plain: false, path, what: expect.stringContaining(what) })
  })

  it('refuses a cycle', () => {
    expect(plainCopy(cycle, 's')).toMatchObject({ plain: false, what: expect.stringContaining('cycle') })
  })

  it('copies everything else, and an undefined property counts as absent', () => {
    const value = { a: [1, 'x', null, true, { b: {} }], u: undefined }
    const copied = plainCopy(value, 's')
    expect(copied).toEqual({ plain: true, value: { a: [1, 'x', null, true, { b: {} }] } })
    expect(copied.plain && copied.value.a).not.toBe(value.a)
    const hostile: unknown = JSON.parse('{"__proto__": {"admin": true}}')
    const safe = plainCopy(hostile, 's')
    expect(safe.plain && (safe.value as { admin?: boolean }).admin).toBeUndefined()
    expect(JSON.stringify(safe.plain && safe.value)).toBe('{"__proto__":{"admin":true}}')
  })
})
