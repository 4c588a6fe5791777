module example

go 1.24

require fawn/bindings/go v0.0.0

replace fawn/bindings/go => ../../bindings/go
