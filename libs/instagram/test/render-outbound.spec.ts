/** Instagram: samples through parse and back, and neutral content in its form. */
import { parseInbound, renderOutbound } from '@botmesh/instagram'
import { pageSamplesSuite } from '../../../test/support/page-transport/samples.suite.js'
import { ACCOUNT_ID, fixture } from './fixture.js'

pageSamplesSuite(fixture, {
  parse: (body, options) => parseInbound(body, ACCOUNT_ID, options),
  render: (to, content, options) => renderOutbound('instagram:shop', to, content, options),
})
