/** The WhatsApp session (Z9) on each store that other processes share: real servers; MongoDB's is a double, or MONGO_URL. */
import { storageSuite } from '../../support/whatsapp-session/storage.suite.js'
import { places } from './places.js'

for (const place of places) storageSuite(place, 90_000)
