/** Messenger as the shared suites see it. */
import { MessengerProvider } from '@botmesh/messenger'
import { samplesBeside, type PageFixture } from '../../../test/support/page-transport/fixture.js'

export const ACCOUNT_ID = '114862837561234'

export const fixture: PageFixture = {
  name: 'Messenger',
  kind: 'messenger',
  make: (options) => new MessengerProvider({ ...options, pageId: ACCOUNT_ID }),
  object: 'page',
  accountId: ACCOUNT_ID,
  users: ['6024133997654321', '5871209911223344'],
  rules: { text: { most: 2000, unit: 'characters' } },
  samples: samplesBeside(import.meta.url),
  readSample: 'read',
}
