/** Instagram's webhook: what is answered to whom, and what reaches the runtime. */
import { pageWebhookSuite } from '../../../test/support/page-transport/webhook.suite.js'
import { fixture } from './fixture.js'

pageWebhookSuite(fixture)
