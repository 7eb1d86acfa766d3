/** Which errors are instances of which classes, across copies of the library too. */
import { describe, expect, it } from '@jest/globals'
import { BotmeshError, ConfigError, LeaseLostError, StoreError } from '../../src/contracts/errors.js'

/** As an application would derive them, without a word about brands. */
class ShopError extends BotmeshError {
  readonly code = 'SHOP'
  constructor() {
    super('Closed.', {})
  }
}
class StockError extends StoreError {
  constructor() {
    super('Sold out.', { store: 'stock', operation: 'take' })
  }
}

describe('errors', () => {
  it('B2: a class derived without a brand of its own is itself and its bases, and nothing else is it', () => {
    const [shop, stock] = [new ShopError(), new StockError()]
    expect([shop instanceof ShopError, shop instanceof BotmeshError, shop instanceof StoreError]).toEqual([
      ...[true, true, false],
    ])
    expect([stock instanceof StockError, stock instanceof StoreError, stock instanceof BotmeshError]).toEqual(
      [...[true, true, true]],
    )
    const others = [new LeaseLostError('k', 'expired'), new StoreError('?', { store: 's', operation: 'o' })]
    expect(others.map((error) => error instanceof ShopError)).toEqual([false, false])
    expect(others.map((error) => error instanceof StockError)).toEqual([false, false])
    expect(shop.name).toBe('ShopError')
  })

  it('B2: an error of another copy of this library is recognised by its brand', async () => {
    const error = new ConfigError('x', { option: 'x' })
    // What another copy of the class would find: the brands, and no common prototype.
    const foreign = Object.create(Error.prototype) as Error
    const brands = Symbol.for('botmesh.error.brands')
    Object.defineProperty(foreign, brands, { value: (error as unknown as Record<symbol, unknown>)[brands] })
    expect(foreign instanceof ConfigError).toBe(true)
    expect(foreign instanceof BotmeshError).toBe(true)
    expect(foreign instanceof LeaseLostError).toBe(false)
    for (const other of [null, undefined, 'text', {}, new Error('plain')]) {
      expect(other instanceof BotmeshError).toBe(false)
    }
  })
})
