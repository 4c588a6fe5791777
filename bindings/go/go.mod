module fawn/bindings/go

go 1.24
