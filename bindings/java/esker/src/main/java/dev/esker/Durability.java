package dev.esker;

/** What a finished write survives. */
public enum Durability {
    /** The durability of the database's options. */
    DEFAULT(0),
    /** Nothing until it is flushed: the write is not logged. */
    BUFFERED(1),
    /** The end of the process. This is the default of the options. */
    PROCESS(2),
    /** Power loss: the call returns after a sync that a group of writers shares. */
    DISK(3);

    final int number;

    Durability(int number) {
        this.number = number;
    }
}
