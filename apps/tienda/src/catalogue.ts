/** What the shop sells. */
import { Injectable } from '@nestjs/common'
import { plain } from './texts.js'

export interface Product {
  id: string
  name: string
  priceCents: number
  sizes: readonly string[]
  /** How many there were when the shop opened. */
  initialStock: number
}

const PRODUCTS: readonly Product[] = [
  { id: 'shirt', name: 'Camiseta', priceCents: 1500, sizes: ['S', 'M', 'L'], initialStock: 100_000 },
  { id: 'hoodie', name: 'Sudadera', priceCents: 3900, sizes: ['M', 'L', 'XL'], initialStock: 50_000 },
  { id: 'cap', name: 'Gorra', priceCents: 1200, sizes: ['U'], initialStock: 3 },
]

const ALIASES: Record<string, string> = { shirt: 'shirt', 't-shirt': 'shirt', hoodie: 'hoodie', cap: 'cap' }

@Injectable()
export class Catalogue {
  readonly products = PRODUCTS

  /** By name, English name, or number in the list. */
  find(answer: string): Product | undefined {
    const wanted = plain(answer)
    const byNumber = /^\d$/.test(wanted) ? this.products[Number(wanted) - 1] : undefined
    return byNumber ?? this.products.find((one) => plain(one.name) === wanted || one.id === ALIASES[wanted])
  }

  get(id: string): Product {
    const product = this.products.find((one) => one.id === id)
    if (product === undefined) throw new Error(`The catalogue has no product "${id}".`)
    return product
  }

  list(): string {
    return this.products
      .map((one, index) => `${index + 1}. ${one.name}, ${(one.priceCents / 100).toFixed(2)} €`)
      .join('\n')
  }
}
