CREATE TABLE orders (id INT PRIMARY KEY, customer TEXT NOT NULL, status TEXT NOT NULL, quantity INT NOT NULL, price NUMERIC(8,2) NOT NULL)
INSERT INTO orders VALUES (1, 'ann', 'new', 2, 9.90), (2, 'bob', 'paid', 1, 129.00), (3, 'cem', 'new', 10, 0.45)
