/** The WhatsApp session (Z9) on each store that other processes share: real servers; MongoDB's is a double, or MONGO_URL. */
import { storageSuite } from '../../support/whatsapp-session/storage.suite.js'
import { places } from './places.js'

// Together they die at each write that there is; on memory one store does (libs/baileys).
for (const [n, place] of places.entries()) {
  storageSuite(place, { first: n + 1, every: places.length, limitMs: 60_000 })
}
