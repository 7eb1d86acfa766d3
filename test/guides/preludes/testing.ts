/** What the guide to testing takes for granted. */
export { expect } from '@jest/globals'
export { MemoryStore } from '@botmesh/core'
