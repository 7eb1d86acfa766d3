/** Messenger: bad options end at construction with an error that names them; pauses that the platform asks for. */
import { MessengerProvider, type MessengerOptions } from '@botmesh/messenger'
import { pageOptionsSuite } from '../../../test/support/page-transport/options.suite.js'
import { fixture } from './fixture.js'

pageOptionsSuite(fixture, (options) => new MessengerProvider(options as MessengerOptions), 'pageId')
