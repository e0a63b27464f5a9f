module millstream

go 1.24
