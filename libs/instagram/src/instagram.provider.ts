/** Instagram as a transport: webhooks in, Graph API out. Not exclusive (P2). What it does is in `@botmesh/meta/page`. */
import { PageProvider } from '@botmesh/meta/page'
import { readOptions, type InstagramOptions } from './options.js'

export class InstagramProvider extends PageProvider {
  /** @throws ConfigError */
  constructor(options: InstagramOptions) {
    super(readOptions(options))
  }
}
