module clients/levigo

go 1.19

require github.com/jmhodges/levigo v1.0.0
