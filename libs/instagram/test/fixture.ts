/** Instagram as the shared suites see it. */
import { InstagramProvider } from '@botmesh/instagram'
import { samplesBeside, type PageFixture } from '../../../test/support/page-transport/fixture.js'

export const ACCOUNT_ID = '17841405822304914'

export const fixture: PageFixture = {
  name: 'Instagram',
  kind: 'instagram',
  make: (options) => new InstagramProvider({ ...options, accountId: ACCOUNT_ID }),
  object: 'instagram',
  accountId: ACCOUNT_ID,
  users: ['1254459154682919', '1254459150011223'],
  rules: { text: { most: 1000, unit: 'bytes' } },
  samples: samplesBeside(import.meta.url),
  readSample: 'seen',
}
