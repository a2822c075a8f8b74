#!/usr/bin/php-cgi -dcgi.force_redirect=0
<?php
// The cheapest CGI script in PHP. tools/bench.py measures the service beside it.
header('Content-Type: text/plain');
echo "hello\n";
