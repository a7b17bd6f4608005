"""Texts that methods for English cannot read, and English texts that look unusual."""

from __future__ import annotations

# Three texts a language, the first two on one subject and the third on another.
FOREIGN: dict[str, tuple[str, str, str]] = {
    "German": (
        "Die Brücke wurde im Frühling gebaut und ist heute noch in Gebrauch.",
        "Im Frühjahr errichtete man die Brücke. Sie steht noch.",
        "Meine Katze frisst am liebsten Fisch mit etwas Milch.",
    ),
    "French": (
        "Le pont a été construit au printemps et il est toujours utilisé.",
        "On a bâti le pont au printemps. Il sert encore.",
        "Mon chat préfère manger du poisson avec un peu de lait.",
    ),
    "Spanish": (
        "El puente fue construido en primavera y todavía se usa.",
        "Construyeron el puente en la primavera. Sigue en uso.",
        "Mi gato prefiere comer pescado con un poco de leche.",
    ),
    "Italian": (
        "Il ponte è stato costruito in primavera ed è ancora in uso.",
        "Hanno costruito il ponte in primavera. Serve ancora.",
        "Il mio gatto preferisce mangiare pesce con un po' di latte.",
    ),
    "Portuguese": (
        "A ponte foi construída na primavera e ainda está em uso.",
        "Construíram a ponte na primavera. Ela ainda serve.",
        "O meu gato prefere comer peixe com um pouco de leite.",
    ),
    "Dutch": (
        "De brug werd in het voorjaar gebouwd en wordt nog steeds gebruikt.",
        "Men bouwde de brug in de lente. Zij staat er nog.",
        "Mijn kat eet het liefst vis met een beetje melk.",
    ),
    "Swedish": (
        "Bron byggdes på våren och används fortfarande.",
        "Man byggde bron under våren. Den finns kvar.",
        "Min katt äter helst fisk med lite mjölk.",
    ),
    "Polish": (
        "Most został zbudowany wiosną i nadal jest używany.",
        "Zbudowano most na wiosnę. Nadal służy ludziom.",
        "Mój kot najchętniej je ryby z odrobiną mleka.",
    ),
    "Czech": (
        "Most byl postaven na jaře a stále se používá.",
        "Na jaře postavili most. Dodnes slouží lidem.",
        "Moje kočka nejraději jí ryby s trochou mléka.",
    ),
    "Finnish": (
        "Silta rakennettiin keväällä, ja se on yhä käytössä.",
        "Keväällä rakennettiin silta. Se palvelee edelleen.",
        "Kissani syö mieluiten kalaa ja vähän maitoa.",
    ),
    "Hungarian": (
        "A hidat tavasszal építették, és még mindig használják.",
        "Tavasszal felépült a híd. Ma is használják.",
        "A macskám legszívesebben halat eszik egy kis tejjel.",
    ),
    "Turkish": (
        "Köprü ilkbaharda yapıldı ve hâlâ kullanılıyor.",
        "İlkbaharda bir köprü inşa edildi. Bugün de kullanılıyor.",
        "Kedim en çok biraz sütle balık yemeyi sever.",
    ),
    "Indonesian": (
        "Jembatan itu dibangun pada musim semi dan masih digunakan.",
        "Mereka membangun jembatan di musim semi. Masih dipakai.",
        "Kucing saya paling suka makan ikan dengan sedikit susu.",
    ),
    "Vietnamese": (
        "Cây cầu được xây vào mùa xuân và vẫn còn được sử dụng.",
        "Người ta xây cầu vào mùa xuân. Nó vẫn còn đó.",
        "Con mèo của tôi thích ăn cá với một ít sữa.",
    ),
    "Russian": (
        "Мост был построен весной и до сих пор используется.",
        "Весной построили мост. Он служит и сегодня.",
        "Моя кошка больше всего любит рыбу с молоком.",
    ),
    "Greek": (
        "Η γέφυρα χτίστηκε την άνοιξη και χρησιμοποιείται ακόμη.",
        "Την άνοιξη έχτισαν τη γέφυρα. Υπάρχει ακόμη.",
        "Η γάτα μου προτιμά το ψάρι με λίγο γάλα.",
    ),
    "Arabic": (
        "بُني الجسر في الربيع وما زال مستخدمًا.",
        "شُيّد الجسر في فصل الربيع. ما زال قائمًا.",
        "قطتي تفضل أكل السمك مع قليل من الحليب.",
    ),
    "Hebrew": (
        "הגשר נבנה באביב ועדיין נמצא בשימוש.",
        "באביב בנו את הגשר. הוא עומד עד היום.",
        "החתול שלי מעדיף לאכול דגים עם קצת חלב.",
    ),
    "Hindi": (
        "पुल वसंत में बनाया गया था और अब भी इस्तेमाल होता है।",
        "वसंत में पुल बना। वह आज भी काम आता है।",
        "मेरी बिल्ली थोड़े दूध के साथ मछली खाना पसंद करती है।",
    ),
    "Chinese": (
        "这座桥建于春天，至今仍在使用。",
        "人们在春天修建了这座桥。它现在还在。",
        "我的猫最喜欢吃鱼，再喝一点牛奶。",
    ),
    "Japanese": (
        "その橋は春に建てられ、今も使われています。",
        "春に橋が完成しました。今日も人々が渡ります。",
        "私の猫は魚と少しの牛乳が大好きです。",
    ),
    "Korean": (
        "그 다리는 봄에 지어졌고 지금도 사용되고 있다.",
        "봄에 다리를 세웠다. 오늘도 사람들이 건넌다.",
        "내 고양이는 우유를 곁들인 생선을 가장 좋아한다.",
    ),
    "Thai": ("สะพานถูกสร้างขึ้นในฤดูใบไม้ผลิและยังใช้งานอยู่", "ผู้คนสร้างสะพานในฤดูใบไม้ผลิ มันยังอยู่", "แมวของฉันชอบกินปลากับนมเล็กน้อย"),
    "Bengali": (
        "সেতুটি বসন্তে নির্মিত হয়েছিল এবং এখনও ব্যবহৃত হয়।",
        "বসন্তে সেতু তৈরি হয়। সেটি আজও আছে।",
        "আমার বিড়াল একটু দুধ দিয়ে মাছ খেতে ভালোবাসে।",
    ),
    "Tamil": (
        "பாலம் வசந்த காலத்தில் கட்டப்பட்டது, இன்னும் பயன்பாட்டில் உள்ளது.",
        "வசந்தத்தில் பாலம் கட்டினார்கள். அது இன்றும் உள்ளது.",
        "என் பூனை சிறிது பாலுடன் மீன் சாப்பிட விரும்புகிறது.",
    ),
}

CODE = (
    "def area(width, height):\n    return width * height",
    "for (let i = 0; i < 10; i++) {\n  console.log(i);\n}",
    "```python\nimport os\nprint(os.getcwd())\n```",
    "SELECT name, age FROM users WHERE age > 30 ORDER BY name;",
)
SYMBOLS = ("✅", "❌", "🙂🙂🙂", "→ ★ ★")

ENGLISH = (
    "The bridge was built in spring.",
    "Dr. Nguyen met Señora Muñoz and Herr Müller in Łódź on Tuesday.",
    "I realy liek this resturant, teh food was grate!",
    "The total is 1,234.56 € for 3 items (incl. 19 % VAT).",
    "She has a certain je ne sais quoi that everybody likes.",
    "The word 猫 means cat in Chinese, and so does chat in French.",
    "lol idk what u mean tbh",
    "Photosynthesis converts carbon dioxide into glucose.",
    "Oslo",
    "Jean-Luc Picard",
    "Beethoven, Mozart, Bach, Schubert and Haydn",
    "eggs, flour, sugar, butter, milk, salt",
    "42",
    "Yes.",
    "",
    "Great job 🎉 see you tomorrow!",
    "Use `git commit -m` and then push it to the server.",
    "To open a file, call open(path); it returns a handle that you must close.",
    "Die hard is a film with Bruce Willis that came out in 1988.",
    "https://example.org/de/seite is the page that you are looking for.",
    "Add the flour and stir until smooth. Bake at 180 °C for 30 minutes.",
    "Café Müller is a dance piece by Pina Bausch.",
    "The Treaty of Versailles, signed in 1919, ended the war with Germany.",
    "e = mc² is the most famous equation in physics.",
)
