/** A double of a MongoDB server, for machines that have none. What it proves and what not: README of `@botmesh/mongo-store`. */
export { MongoDouble, type MongoDoubleOptions, type MongoUser } from './mongo-double.js'
