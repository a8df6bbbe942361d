"""Memory: the items that an author can be shown, stored in a bank and retrieved by similarity.

| module | content |
|---|---|
| `item` | `MemoryItem` with its `Kind` and `Stage` |
| `bank` | `MemoryBank`: add, retrieve, record outcomes, snapshot, export |
| `store`, `schema`, `rows`, `index` | the bank's tables in SQLite, their migrations, items as rows, the search |
| `exchange`, `integrity` | export and import, checks of a bank's content |
| `embedding`, `words` | the `Embedder` contract and the offline default |
| `endpoint_embedding`, `sentence_embedding` | embedders that use a model endpoint or a local sentence model |
| `experience`, `pages`, `seed` | traces and experiences of attempts, choice of API pages, seed knowledge |
| `conformance` | tests that a plug-in's embedder inherits |
"""
