"""The method as published: autoencoders, kernel dependence and a relaxed matching, by turns."""
