module conformance

go 1.24

require millstream v0.0.0

replace millstream => ../../../../guest-sdk/go
