/** Z9, end to end: the session in a store, on memory. The other stores: test/conformance/whatsapp-session. */
import { memoryPlace } from '../../../test/support/whatsapp-session/place.js'
import { sessionSuite } from '../../../test/support/whatsapp-session/session.suite.js'

sessionSuite(memoryPlace)
