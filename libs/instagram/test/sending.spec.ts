/** Sending to Instagram, against the double. */
import { pageSendingSuite } from '../../../test/support/page-transport/sending.suite.js'
import { fixture } from './fixture.js'

pageSendingSuite(fixture)
