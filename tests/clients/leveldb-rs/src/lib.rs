//! Nothing: the manifest pins the client.
