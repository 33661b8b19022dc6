/** An event as a bean: {@code id} is its number and its time. */
public final class Event {
    public int id;
    public int kind;
    public int key;
    public int v;

    public Event() {}

    Event(int id, int kind, int key, int v) {
        this.id = id;
        this.kind = kind;
        this.key = key;
        this.v = v;
    }

    public int getId() {
        return id;
    }

    public int getKind() {
        return kind;
    }

    public int getKey() {
        return key;
    }

    public int getV() {
        return v;
    }
}
