/** After all: the registry and the tarballs go. */
import { end } from './global-setup.mjs'

export default function teardown() {
  return end()
}
