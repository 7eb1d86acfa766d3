/** The service that documents call `Stock`. */
export class Stock {
  readonly sizes: string[] = ['S', 'M', 'L']
  has(size: string): boolean {
    return this.sizes.includes(size)
  }
}
