/** Instagram: bad options end at construction with an error that names them; pauses that the platform asks for. */
import { InstagramProvider, type InstagramOptions } from '@botmesh/instagram'
import { pageOptionsSuite } from '../../../test/support/page-transport/options.suite.js'
import { fixture } from './fixture.js'

pageOptionsSuite(fixture, (options) => new InstagramProvider(options as InstagramOptions), 'accountId')
