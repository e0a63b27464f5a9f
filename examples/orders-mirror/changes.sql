INSERT INTO orders VALUES (4, 'dee', 'new', 3, 19.50)
UPDATE orders SET status = 'paid' WHERE id = 1
DELETE FROM orders WHERE id = 3
UPDATE orders SET quantity = quantity + 1 WHERE customer IN ('bob', 'dee')
UPDATE orders SET id = 40 WHERE id = 4
